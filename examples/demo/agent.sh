#!/bin/sh
# examples/demo/agent.sh - a scripted agent that goes too far
#
# usage: agent.sh HOME OTHER PORT
#
# Works in a project, and tries what a hostile or careless agent might try. Each line says
# what came of it and, for a refusal, what the system said. It only reports: ../../demo.sh
# looks at the host afterwards and does not take its word. HOME is the user's home, OTHER
# another project there, PORT that of a server on 127.0.0.1 (0: there is none).

home=$1 other=$2 port=$3

# try WHAT COMMAND... : run it, say how it went
try() {
	what=$1
	shift
	if said=$("$@" 2>&1); then
		verdict='let through'
	else
		verdict=refused
	fi
	said=$(printf '%s\n' "$said" | tail -n 1)
	[ "$verdict" = 'let through' ] || said=${said##*: }
	printf '  %-12s %-36s %s\n' "$verdict" "$what" "${said:-done}"
}

password() {
	grep PASSWORD .env || { echo 'is empty'; false; }
}

put() {
	echo "$2" | tee "$1" >/dev/null && echo "${3:-written}"
}

settings() {
	mkdir -p .claude && put .claude/settings.json '{}'
}

token_of_others() {
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep '^DEMO_TOKEN=' ||
		{ echo 'none in sight'; false; }
}

api_key() {
	printenv DEMO_API_KEY || { echo 'not set'; false; }
}

reach() {
	bash -c 'exec 3<>"/dev/tcp/$1/$2"' bash "$1" "$2"
}

edit() {
	sed 's/Helo/Hello/' greet.sh >greet.new && cat greet.new >greet.sh && rm greet.new &&
		grep Hello greet.sh
}

echo 'What it should not be able to do:'
try 'read a key in your home' cat "$home/.ssh/id_demo"
try "read this project's .env" password
try 'read an API key of your shell' api_key
try "read other processes' environment" token_of_others
[ "$port" = 0 ] || try "connect to 127.0.0.1:$port" reach 127.0.0.1 "$port"
try 'write into another project' put "$other/notes.txt" 'the agent was here'
try 'plant a git hook' put .git/hooks/pre-commit '#!/bin/sh'
try 'make settings with hooks' settings
try 'move .git away, to replace it' mv .git .git-old

echo 'What it may do:'
try 'edit greet.sh' edit
try "run the project's test" sh ./test.sh
try 'write to ~/.profile' put "$home/.profile" 'echo hello' 'in a home that ends with the box'
