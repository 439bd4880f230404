/*
 * eval/run-schema.h - the JSON Schemas of run.json and attempt.json
 */
#ifndef EVAL_RUN_SCHEMA_H
#define EVAL_RUN_SCHEMA_H

struct str;

void run_schema(struct str *out);
void attempt_schema(struct str *out);

#endif
