"""Data × tensor parallelism: a grid of ranks, two ways to shard a layer, and lab 01's transformer over both; lab 07."""
