"""Start processes with time limits and clean ends; the whole course starts its processes here."""
