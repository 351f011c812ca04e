"""The law: circuits, cases, and the one function that decides where a case goes next. Pure."""
