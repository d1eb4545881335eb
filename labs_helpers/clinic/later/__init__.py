"""Six jobs that were written after `rules.REFERENCE` had been frozen, to score rules on jobs that nobody tuned for."""
