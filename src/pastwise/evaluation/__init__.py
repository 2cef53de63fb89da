"""Whether a rule is better than what was done, and how certain that is.

A *criterion* says what a rule is judged by. *Values* of rules are computed on models that are
sampled from the posterior of a log, or estimated from its episodes by *importance* sampling. A
*verdict* compares them, and `evaluate` puts everything into one *result*.
"""
