"""Tests whether sums stay exact: every slot policy, over several levels of aggregation, under every kind of fault."""
