"""A small real model, trained data-parallel with gradients that are summed in the network."""
