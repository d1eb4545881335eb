"""Generate text for many requests at once: a paged cache, a scheduler, an engine, speculative decoding."""
