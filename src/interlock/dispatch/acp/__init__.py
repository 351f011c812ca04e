"""The carrier `acp`: agents that speak the Agent Client Protocol over stdin and stdout.

One process and one session for each dispatch. What an agent may do beyond talking is the policy's
and, where the policy does not say, a human's word.
"""
