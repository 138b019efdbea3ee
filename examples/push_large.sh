#!/bin/sh
# A large file in parts with curl alone: what the service has of it is not sent again when this is run again.
#
#   push_large.sh FILE datasets name=line-7
#   push_large.sh FILE models 'name=net&architecture=blk_4_fil_64'
set -eu
U=${FLASHCARDS_URL:-http://127.0.0.1:8642}
FILE=$1 WHAT=$2 QUERY=$3
PART=$(mktemp)
trap 'rm -f "$PART"' EXIT

ask() { curl --silent --show-error --fail-with-body --retry 5 --retry-connrefused ${FLASHCARDS_KEY:+-H "Authorization: Bearer $FLASHCARDS_KEY"} "$@"; }
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

DIGEST=$(sha256sum "$FILE" | cut -d' ' -f1)
UPLOAD=$(ask "$U/v1/uploads" -H 'Content-Type: application/json' -d "{\"digest\":\"$DIGEST\",\"size\":$(wc -c <"$FILE")}")
ID=$(echo "$UPLOAD" | field id)
SIZE=$(echo "$UPLOAD" | field part_size)
for N in $(echo "$UPLOAD" | sed 's/.*"missing":\[\([0-9,]*\)\].*/\1/' | tr ',' ' '); do
  dd if="$FILE" of="$PART" bs="$SIZE" skip=$((N - 1)) count=1 status=none
  ask -o /dev/null -T "$PART" "$U/v1/uploads/$ID/parts/$N"
done
ask -X POST "$U/v1/$WHAT?$QUERY&upload=$ID"
