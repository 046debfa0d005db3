#!/usr/bin/env bash
# mqadmin says that it resets a queue to offset 0, and sends nothing; it resets every queue if only the queue is named.
#
# Packages: org.apache.rocketmq:rocketmq-namesrv, rocketmq-broker and rocketmq-tools 5.5.0, on Java 17.
# Expected: `resetOffsetByTime -b BROKER -q 1 -o 0` sets the offset of queue 1 to 0, as `-o 1` sets it to 1. `-q 1` without `-b` is refused,
# or resets queue 1.
# Seen: `-o 0` prints "reset consumer offset to 0", exits with 0, and the offset stays 1 (ResetOffsetByTimeCommand#execute sends only
# targets above 0). `-q 1 -o 1` without `-b` ignores both options and resets all queues to the time of -s.
set -euo pipefail
command -v mvn java >/dev/null || { echo "needs Maven and Java" && exit 2; }
folder=$(mktemp -d)
pids=()
stop() {
    kill -9 "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap stop EXIT

cat >"$folder/pom.xml" <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-namesrv</artifactId><version>5.5.0</version></dependency>
    <dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-broker</artifactId><version>5.5.0</version></dependency>
    <dependency><groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-tools</artifactId><version>5.5.0</version></dependency>
  </dependencies>
</project>
XML
mvn -q -B -Dstyle.color=never -f "$folder/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$folder/jars" >&2 || exit 2

# Free ports: the name server's and the broker's, which takes the ones two below and one above, too.
read -r names broker < <(python3 - <<'PYTHON'
import random
import socket


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


while True:
    first = random.randrange(20_000, 30_000)
    if all(map(is_free, range(first, first + 6))):
        print(first, first + 4)
        break
PYTHON
)
# Becomes Java, so that $! of a run in the background is Java's process.
run() {
    exec java -XX:+UseSerialGC -Xmx512m -XX:TieredStopAtLevel=1 -Duser.home="$folder" \
        --add-exports=java.base/sun.nio.ch=ALL-UNNAMED --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED \
        --add-opens=java.base/sun.nio.ch=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED \
        -Drocketmq.home.dir="$folder" -cp "$folder/jars/*" "$@"
}
admin() { (run org.apache.rocketmq.tools.command.MQAdminStartup "$@" -n "127.0.0.1:$names") 2>>"$folder/admin.log"; }
# Waits until a command's output has a text, for two minutes.
until_has() {
    local text=$1
    shift
    for _ in $(seq 40); do
        "$@" | grep -q "$text" && return
        sleep 1
    done
    echo "not seen in two minutes: $text" >&2
    exit 1
}

printf 'listenPort=%s\n' "$names" >"$folder/names.conf"
cat >"$folder/broker.conf" <<CONF
brokerName=broker-a
brokerIP1=127.0.0.1
listenPort=$broker
namesrvAddr=127.0.0.1:$names
storePathRootDir=$folder/store
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=600000
diskMaxUsedSpaceRatio=95
timerWheelEnable=false
CONF
run org.apache.rocketmq.namesrv.NamesrvStartup -c "$folder/names.conf" >"$folder/names.log" 2>&1 &
pids+=($!)
run org.apache.rocketmq.broker.BrokerStartup -c "$folder/broker.conf" >"$folder/broker.log" 2>&1 &
pids+=($!)
address=127.0.0.1:$broker
until_has broker-a admin clusterList
admin updateTopic -b "$address" -t T -r 2 -w 2 >/dev/null
admin updateSubGroup -b "$address" -g G >/dev/null
until_has brokerDatas admin topicRoute -t T
for queue in 0 0 1 1; do
    admin sendMessage -t T -p body -b broker-a -i "$queue" >/dev/null
done

# The reset of a queue to N, and the group's offsets after it.
reset() {
    admin resetOffsetByTime -g G -t T -s 0 "$@" | sed "s/$address/ADDRESS/" | grep -E '^(reset|broker-a)' | tr -s ' ' | sed 's/ $//' | sort
}
offsets() {
    admin consumerProgress -g G -t T | awk '$2 == "broker-a" {print "offset of queue " $3 ": " $5}' | sort
}
{
    echo "mqadmin 5.5.0"
    echo "-b -q 1 -o 1:" && reset -b "$address" -q 1 -o 1 && offsets
    echo "-b -q 1 -o 0:" && reset -b "$address" -q 1 -o 0 && echo "exit status $?" && offsets
    echo "-b -q 0 -o 2:" && reset -b "$address" -q 0 -o 2 && offsets
    echo "-q 1 -o 1:" && reset -q 1 -o 1 && offsets
} >"$folder/output"
diff "$folder/output" - <<'SEEN'
mqadmin 5.5.0
-b -q 1 -o 1:
reset consumer offset to 1
offset of queue 0: 0
offset of queue 1: 1
-b -q 1 -o 0:
reset consumer offset to 0
exit status 0
offset of queue 0: 0
offset of queue 1: 1
-b -q 0 -o 2:
reset consumer offset to 2
offset of queue 0: 2
offset of queue 1: 1
-q 1 -o 1:
broker-a 0 0
broker-a 1 0
offset of queue 0: 0
offset of queue 1: 0
SEEN
