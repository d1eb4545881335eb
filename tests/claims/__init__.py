"""Where each number in the text of a lab comes from: a table per lab, and the test that holds the text to it."""
