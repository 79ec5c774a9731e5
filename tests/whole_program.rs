//! Whole-program tests: the real binary, on files and pipes, as a user runs it.

#[cfg(test)]
mod whole_program {
    mod architecture;
    mod backup;
    mod budget;
    mod canaries;
    mod classify;
    mod codes;
    mod codes_page;
    mod completions;
    mod corpus;
    mod dashboards;
    mod denied;
    mod deploy;
    mod durability;
    mod example_log;
    mod files;
    mod flight;
    mod fuzz;
    mod golden;
    mod health;
    mod help;
    mod hostile;
    mod hostile_senders;
    mod http_sql;
    mod ingest;
    mod lake;
    mod metrics;
    mod older_store;
    mod otlp;
    mod pipes;
    mod postgres;
    mod registry_file;
    mod serve;
    mod server;
    mod settings;
    mod sql;
    mod sql_command;
    mod support;
    mod tail;
    mod tls;
    mod tokens;
}
