"""Whether sums stay exact: every slot policy, over several levels of aggregation, under every fault."""
