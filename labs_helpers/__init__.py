"""The library behind the labs: foundations, one room a topic, and beside each topic the labs that teach it."""
