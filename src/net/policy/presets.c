/*
 * net/policy/presets.c - the hosts behind @names
 *
 * A preset has what the service's own clients need to work: its API, sign-in and downloads.
 * Left out on purpose: telemetry, and hosts where anybody may store data under a name of the
 * vendor (storage.googleapis.com, *.amazonaws.com), because reaching one bucket there means
 * reaching all of them. A user who needs those lists them.
 *
 * @npm and @debian are not here: the user's own configuration says which registry and which
 * mirror they are, and the caller reads it.
 */
#include "net/policy/policy.h"
#include "base/mem.h"

#define PRESET(name_, ...)                                                          \
	{                                                                           \
		.name = (name_), .entry = (const char *const[]){ __VA_ARGS__ },     \
		.n = sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), \
	}

static const struct policy_preset presets[] = {
	PRESET("@anthropic", "api.anthropic.com", "claude.ai", "platform.claude.com",
		"console.anthropic.com", "mcp-proxy.anthropic.com", "downloads.claude.ai"),
	PRESET("@openai", "api.openai.com", "auth.openai.com", "chatgpt.com"),
	PRESET("@google", "generativelanguage.googleapis.com", "aiplatform.googleapis.com",
		"cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "accounts.google.com",
		"www.googleapis.com"),
	PRESET("@github", "github.com", "github.com:22", "ssh.github.com", "api.github.com",
		"uploads.github.com", "codeload.github.com", "gist.github.com",
		"raw.githubusercontent.com", "gist.githubusercontent.com",
		"objects.githubusercontent.com", "release-assets.githubusercontent.com",
		"media.githubusercontent.com"),
	PRESET("@pypi", "pypi.org", "files.pythonhosted.org"),
	PRESET("@crates", "crates.io", "index.crates.io", "static.crates.io"),
	PRESET("@go", "proxy.golang.org", "sum.golang.org", "go.dev"),
};

const struct policy_preset *policy_preset(size_t i)
{
	return i < ARRAY_SIZE(presets) ? &presets[i] : NULL;
}
