"""Hidden inputs of exercises 1 to 5: stages, the naive step, and schedules with one stage per rank."""
