"""The source of each number in a lab's text: one table per lab, and the test that compares the text with it."""
