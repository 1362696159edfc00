// graphile-worker: a queue of no-ops, drained as it comes ("default") or tuned. It deletes the row of a finished job.
"use strict";

const { appendFileSync } = require("node:fs");
const { Logger, makeWorkerUtils, run } = require("graphile-worker");

const connectionString = process.env.BENCH_DATABASE;
const AT_ONCE = 1000;
const DEFAULT = { concurrentJobs: 10 };
const TUNED = { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0 };
const logger = new Logger(() => () => {});

let hasBegun = false;
function noop() {
  if (!hasBegun) {
    hasBegun = true;
    appendFileSync(process.env.BENCH_STARTS, `${Date.now() / 1000}\n`);
  }
}

async function prepare(jobs) {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  for (let first = 0; first < jobs; first += AT_ONCE) {
    const count = Math.min(AT_ONCE, jobs - first);
    await utils.addJobs(Array.from({ length: count }, () => ({ identifier: "noop", payload: {} })));
  }
  await utils.release();
}

async function main() {
  if (process.argv.includes("--prepare")) return prepare(Number(process.env.BENCH_JOBS));
  const worker = process.argv.includes("--tuned") ? TUNED : DEFAULT;
  const runner = await run({ preset: { worker: { ...worker, connectionString } }, logger, taskList: { noop } });
  return runner.promise;
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
