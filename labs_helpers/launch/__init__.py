"""The one door through which the course starts processes: time limits and clean ends."""
