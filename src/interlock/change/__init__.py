"""The circuit `change`: a change is drafted, reviewed by another role, approved and published."""
