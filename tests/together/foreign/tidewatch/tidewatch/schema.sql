CREATE TABLE tide_log (line_id INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (line_id));
