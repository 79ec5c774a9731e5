-- Every warning: calls that worked, and said that they soon will not
SELECT * FROM events WHERE kind = 'warning'
