-- Statements that no door may run. A line with `!` stands before each and names the code that is answered: `refused`, one
-- of the limits, or another; where several are right, `|` stands between them.

--! refused
COPY events TO 'stolen.csv'

--! refused
COPY (SELECT * FROM events) TO 'stolen.parquet' STORED AS PARQUET

--! refused
EXPLAIN ANALYZE COPY events TO 'stolen.csv'

--! refused
EXPLAIN COPY events TO 'stolen.csv'

--! refused|syntax
COPY events FROM '/etc/passwd'

--! refused
CREATE TABLE mine AS SELECT 1

--! refused
CREATE VIEW mine AS SELECT 1

--! refused
CREATE EXTERNAL TABLE passwords STORED AS CSV LOCATION '/etc/passwd'

--! refused
CREATE UNBOUNDED EXTERNAL TABLE passwords STORED AS CSV LOCATION '/etc/passwd'

--! refused
CREATE SCHEMA mine

--! refused
CREATE DATABASE mine

--! refused
CREATE FUNCTION f(BIGINT) RETURNS BIGINT RETURN $1 + 1

--! refused
DROP TABLE events

--! refused
DROP VIEW errors

--! refused
DROP SCHEMA public CASCADE

--! refused
ALTER TABLE events ADD COLUMN mine INT

--! refused
TRUNCATE events

--! refused
INSERT INTO events SELECT * FROM events

--! refused
INSERT INTO codes VALUES ('x')

--! refused
UPDATE events SET message = ''

--! refused
DELETE FROM events

--! refused|syntax
MERGE INTO events USING codes ON true WHEN MATCHED THEN DELETE

--! refused
EXPLAIN DELETE FROM events

--! refused
EXPLAIN ANALYZE INSERT INTO events SELECT * FROM events

--! refused|syntax
WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone

--! refused|syntax
WITH new AS (INSERT INTO codes VALUES ('x') RETURNING *) SELECT * FROM new

--! refused
SELECT * INTO mine FROM events

--! refused
SELECT * FROM events FOR UPDATE

--! refused
SET datafusion.execution.parquet.pushdown_filters = false

--! refused
SET datafusion.runtime.memory_limit = '100G'

--! refused
SET datafusion.runtime.temp_directory = '/tmp/x'

--! refused
RESET datafusion.execution.batch_size

--! refused
PREPARE p AS DELETE FROM events

--! refused
EXECUTE p

--! refused
GRANT ALL ON events TO PUBLIC

--! refused|syntax
VACUUM

--! refused|syntax
ANALYZE events

--! refused|syntax
CALL anything()

--! refused|syntax
LOAD 'library.so'

--! refused|syntax
INSTALL httpfs

--! refused|syntax
ATTACH '/etc/passwd' AS p

--! refused|syntax
DO $$ BEGIN END $$

--! unknown_name|invalid
SELECT * FROM '/etc/passwd'

--! unknown_name|invalid
SELECT * FROM "/etc/passwd"

--! unknown_name|invalid
SELECT * FROM read_csv('/etc/passwd')

--! unknown_name|invalid
SELECT * FROM read_parquet('/etc/passwd')

--! unknown_name|invalid
SELECT * FROM parquet_metadata('/etc/passwd')

--! unknown_name
SELECT pg_read_file('/etc/passwd')

--! unknown_name
SELECT lo_import('/etc/passwd')

--! unknown_name|invalid
SELECT * FROM dblink('host=127.0.0.1', 'SELECT 1')

--! unknown_name
SELECT * FROM requests

--! refused
SELECT 1; DROP TABLE events

--! refused
SELECT 1; SELECT 2; COPY events TO 'x.csv'

--! refused
/* SELECT */ DROP /* nothing */ TABLE -- at all
events

--! refused
DrOp/**/TaBlE events

--! time_limit|memory_limit|row_limit
SELECT sum(length(a.code || h.code)) FROM codes a, codes b, codes c, codes d, codes e, codes f, codes g, codes h

--! time_limit|memory_limit|row_limit
SELECT a.code FROM codes a, codes b, codes c, codes d, codes e

--! time_limit|memory_limit|row_limit
WITH RECURSIVE forever AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM forever) SELECT count(*) FROM forever

--! time_limit|memory_limit|row_limit
SELECT * FROM generate_series(1, 1000000000000)

--! time_limit|memory_limit|row_limit
SELECT count(DISTINCT value) FROM generate_series(1, 1000000000000)

--! time_limit|memory_limit|row_limit
SELECT value FROM generate_series(1, 100000000000) ORDER BY value DESC

--! time_limit|memory_limit|row_limit|failed|invalid
SELECT array_agg(value) FROM generate_series(1, 1000000000000)

--! time_limit|memory_limit|row_limit|failed|invalid
SELECT string_agg(code, ',') FROM (SELECT a.code FROM codes a, codes b, codes c, codes d, codes e)
