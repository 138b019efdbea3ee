#!/bin/sh
# One step of a continual pipeline with curl alone, for whatever runs steps: Airflow's BashOperator, Argo, cron.
#
#   pipeline.sh RUN push FILE       upload the images of this run
#   pipeline.sh RUN learn LEARNER   queue them as the learner's next task
#   pipeline.sh RUN wait            until it has ended; fails if the job did
#   pipeline.sh RUN gate LIMIT      fails, and takes the learner back, if earlier tasks became worse by more than that
#   pipeline.sh RUN publish FILE    the weights of the version that passed
#
# RUN is a folder that keeps the ids between steps. Its name is in every Idempotency-Key, so a step that is run again, after
# a time-out or on another machine, does nothing twice. FIELDS are further fields of the task, as JSON without braces.
set -eu
U=${FLASHCARDS_URL:-http://127.0.0.1:8642}
FIELDS=${FIELDS:-'"epochs":15'}
RUN=$1 STEP=$2
mkdir -p "$RUN"
KEY=$(basename "$RUN")-$STEP

ask() { curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused ${FLASHCARDS_KEY:+-H "Authorization: Bearer $FLASHCARDS_KEY"} "$@"; }
post() { ask -X POST -H "Idempotency-Key: $KEY" "$@"; }
id_of() { grep -o "$1_[0-9a-f]*" | head -1; }
field() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" | head -1; }

case $STEP in
push)
  post -T "$3" "$U/v1/datasets?name=$(basename "$RUN")" | id_of dataset >"$RUN/dataset"
  ;;
learn)
  echo "$3" >"$RUN/learner"
  [ -s "$RUN/before" ] || ask "$U/v1/learners/$3" | field version >"$RUN/before" # not again once the task is learnt
  BODY="{\"dataset\":\"$(cat "$RUN/dataset")\",\"name\":\"$(basename "$RUN")\",\"strategy\":{\"kind\":\"flashcards\"},$FIELDS}"
  post -H 'Content-Type: application/json' -d "$BODY" "$U/v1/learners/$3/tasks" | id_of job >"$RUN/job"
  ;;
wait)
  STATE=queued
  while [ "$STATE" = queued ] || [ "$STATE" = running ]; do
    ask "$U/v1/jobs/$(cat "$RUN/job")?wait=60" >"$RUN/job.json"
    STATE=$(grep -o '"state":"[a-z]*"' "$RUN/job.json" | head -1 | cut -d'"' -f4)
  done
  ask -o "$RUN/report.html" "$U/v1/jobs/$(cat "$RUN/job")/report.html"
  [ "$STATE" = succeeded ] || { echo "the job has $STATE: $RUN/report.html says why" >&2; exit 1; }
  ;;
gate)
  FORGOT=$(field forgetting <"$RUN/job.json")
  echo "the worst earlier task changed by ${FORGOT}"
  [ "$FORGOT" = null ] || awk "BEGIN { exit !($FORGOT <= $3) }" || {
    post -H 'Content-Type: application/json' -d "{\"version\":$(cat "$RUN/before")}" "$U/v1/learners/$(cat "$RUN/learner")/rollback" >/dev/null
    echo "that is more than $3: the learner is back at version $(cat "$RUN/before")" >&2
    exit 1
  }
  ;;
publish)
  LEARNER=$(cat "$RUN/learner")
  ask -o "$3" "$U/v1/learners/$LEARNER/versions/$(ask "$U/v1/learners/$LEARNER" | field version)/weights"
  ;;
*)
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
