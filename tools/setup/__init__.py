"""``make setup``: everything the checkout needs, made once and repaired when it has to be."""
