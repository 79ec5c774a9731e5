-- Every failure: the events of kind error
SELECT * FROM events WHERE kind = 'error'
