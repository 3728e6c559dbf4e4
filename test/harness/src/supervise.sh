# Runs "$3..." and sees to it that it does not outlive whoever holds the other end of our stdin.
#   $1 seconds between TERM and KILL once that end closes (0: KILL at once)   $2 file for the child's pid
# A line on stdin is a signal's name, sent to the child. We lead a process group of our own, so
# that a Ctrl-C of the terminal does not reach the child before its owner decided what to do.
grace=$1
pidfile=$2
shift 2
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
echo "$child" >"$pidfile"
ending=
trap 'ending=1' USR1
trap 'kill -s TERM "$child" 2>/dev/null' TERM INT HUP
(
    trap - USR1 TERM INT HUP
    while read -r signal <&3; do
        kill -s "$signal" "$child" 2>/dev/null
    done
    kill -s USR1 $$ 2>/dev/null
    if [ "$grace" -gt 0 ]; then
        kill -s TERM "$child" 2>/dev/null
        kill -s CONT "$child" 2>/dev/null
        sleep "$grace"
    fi
    kill -s KILL 0
) >/dev/null 2>&1 &
watcher=$!
exec 3<&- >/dev/null 2>&1
wait "$child"
status=$?
# A trapped signal ends the wait early.
while kill -s 0 "$child" 2>/dev/null; do
    wait "$child"
    status=$?
done
[ -z "$ending" ] || kill -s KILL 0
kill -s TERM "$watcher" 2>/dev/null
exit "$status"
