"""Which answers cannot deceive the check that runs beside them."""
