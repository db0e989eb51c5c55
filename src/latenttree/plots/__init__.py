"""Pictures of trees: layouts (pure arithmetic) and matplotlib figures."""
