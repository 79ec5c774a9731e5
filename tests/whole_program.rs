//! Whole-program tests: the real binary, on files and pipes, as a user runs it.

#[cfg(test)]
mod whole_program {
    mod api;
    mod architecture;
    mod backup;
    mod browser;
    mod budget;
    mod canaries;
    mod classify;
    mod codes;
    mod codes_page;
    mod completions;
    mod connections;
    mod corpus;
    mod dashboards;
    mod delta;
    mod demo;
    mod denied;
    mod deploy;
    mod durability;
    mod example_log;
    mod examples;
    mod field;
    mod files;
    mod flight;
    mod fuzz;
    mod golden;
    mod health;
    mod help;
    mod hostile;
    mod hostile_queries;
    mod hostile_senders;
    mod http_sql;
    mod idempotency;
    mod ingest;
    mod metrics;
    mod numbers;
    mod otlp;
    mod page;
    mod pipes;
    mod postgres;
    mod redaction;
    mod registry_file;
    mod retention;
    mod serve;
    mod server;
    mod settings;
    mod sql;
    mod sql_command;
    mod storm;
    mod support;
    mod tail;
    mod tls;
    mod tokens;
}
