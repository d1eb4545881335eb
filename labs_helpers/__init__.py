"""The library behind the labs: foundations (bench, course, launch) and one room a topic."""
