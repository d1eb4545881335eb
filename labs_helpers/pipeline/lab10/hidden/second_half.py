"""Hidden inputs of exercises 6 to 9: interleaved stages, split backward passes, rank groups, unequal stages."""
