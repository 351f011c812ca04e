"""The reference pages, made from the tables the program itself reads."""
