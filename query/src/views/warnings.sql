-- Every warning: the events of kind warning, whose calls worked and announced that they soon will not
SELECT * FROM events WHERE kind = 'warning'
