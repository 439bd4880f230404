/*
 * eval/report/embed.c - files as arrays of bytes, for the build
 *
 *	embed NAME=FILE [FILE...] [NAME=FILE [FILE...]]... > header
 *
 * Files that follow a name go into one array.
 */
#include <stdio.h>
#include <string.h>

static int add_file(const char *path)
{
	FILE *in = fopen(path, "rb");
	int c, n = 0;

	if (!in) {
		perror(path);
		return 1;
	}
	while ((c = getc(in)) != EOF)
		printf("%s%d,", n++ % 20 ? "" : "\n", c);
	fclose(in);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (equals)
			printf("%sstatic const unsigned char %.*s[] = {", i > 1 ? "\n};\n" : "",
				(int)(equals - argv[i]), argv[i]);
		if (add_file(equals ? equals + 1 : argv[i]) != 0)
			return 1;
	}
	printf("\n};\n");
	return fflush(stdout) ? 1 : 0;
}
