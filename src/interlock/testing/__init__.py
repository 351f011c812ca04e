"""For authors of circuits, applications and carriers: what they test their own things with.

`lint` reads prompts, `transcript` recorded sessions; `responder` is the agent's side of the file
protocol, and `conform` tries a watcher against it.
"""
