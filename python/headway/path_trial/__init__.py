"""Congestion controllers compared over a path of one's own, by the kernel's TCP (`headway try`).

A client sends; `headway try --serve` on the other side receives. In each round every controller
sends once, in an order drawn from the seed. What differs between rounds differs for all of them.
"""
