#include "plan/obeyed.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

/* Short names for the table; its rows omit fields at the end. */
enum { FILE_ = false, DIR_ = true };
#define KEPT     OBEYED_KEPT
#define GATED    OBEYED_GATED
#define REPORTED OBEYED_REPORTED
#define TOLD     OBEYED_TOLD
#define OPEN     OBEYED_OPEN
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define LEFTHOOK_ROW(name)                                                   \
	{                                                                    \
		name, FILE_, REPORTED, "lefthook",                           \
			"runs what it names, where its hooks are installed", \
			"https://lefthook.dev/configuration/"                \
	}
#define LEFTHOOK(end)                                                                       \
	LEFTHOOK_ROW("lefthook." end), LEFTHOOK_ROW(".lefthook." end),                      \
		LEFTHOOK_ROW(".config/lefthook." end), LEFTHOOK_ROW("lefthook-local." end), \
		LEFTHOOK_ROW(".lefthook-local." end),                                       \
		LEFTHOOK_ROW(".config/lefthook-local." end)

/* An entry inside another stands after it. */
const struct obeyed obeyed_all[] = {
	{ ".claude", DIR_, KEPT, "Claude Code",
		"runs its hooks and obeys its settings, agents, commands and skills",
		"https://code.claude.com/docs/en/settings" },
	{ ".claude/worktrees", DIR_, OPEN, "Claude Code", "makes its worktrees there",
		"https://code.claude.com/docs/en/common-workflows" },
	{ ".claude/agent-memory", DIR_, OPEN, "Claude Code", "keeps what subagents noted there",
		"https://code.claude.com/docs/en/sub-agents" },
	{ ".claude/agent-memory-local", DIR_, OPEN, "Claude Code",
		"keeps what subagents noted there",
		"https://code.claude.com/docs/en/sub-agents" },
	{ ".mcp.json", FILE_, GATED, "clients",
		"start the servers it names, once they were approved",
		"https://code.claude.com/docs/en/mcp" },
	{ ".lsp.json", FILE_, GATED, "Claude Code", "starts the language servers it names",
		"https://code.claude.com/docs/en/plugins-reference" },
	{ ".claude-plugin", DIR_, REPORTED, "Claude Code",
		"takes the directory for a plugin or a list of plugins",
		"https://code.claude.com/docs/en/plugins-reference" },
	{ ".codex", DIR_, KEPT, "Codex", "obeys its settings and runs its hooks",
		"https://learn.chatgpt.com/docs/config-file/config-basic" },
	{ ".agents", DIR_, GATED, "Codex and others", "offer its skills to the model",
		"https://learn.chatgpt.com/docs/build-skills" },
	{ ".gemini", DIR_, KEPT, "Gemini CLI",
		"obeys its settings and starts the servers they name",
		"https://geminicli.com/docs/reference/configuration" },
	{ ".qwen", DIR_, GATED, "Qwen Code",
		"obeys its settings and starts the servers they name",
		"https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings" },
	/* opencode writes into .opencode at every start, so parts of it are kept. */
	{ ".opencode/plugin", DIR_, GATED, "opencode", "loads its plugins",
		"https://opencode.ai/docs/plugins" },
	{ ".opencode/plugins", DIR_, GATED, "opencode", "loads its plugins",
		"https://opencode.ai/docs/plugins" },
	{ ".opencode/tool", DIR_, GATED, "opencode", "loads its tools",
		"https://opencode.ai/docs/custom-tools" },
	{ ".opencode/tools", DIR_, GATED, "opencode", "loads its tools",
		"https://opencode.ai/docs/custom-tools" },
	{ ".opencode/agent", DIR_, GATED, "opencode", "obeys its agents",
		"https://opencode.ai/docs/agents" },
	{ ".opencode/agents", DIR_, GATED, "opencode", "obeys its agents",
		"https://opencode.ai/docs/agents" },
	{ ".opencode/command", DIR_, GATED, "opencode", "offers its commands",
		"https://opencode.ai/docs/commands" },
	{ ".opencode/commands", DIR_, GATED, "opencode", "offers its commands",
		"https://opencode.ai/docs/commands" },
	{ ".opencode/opencode.json", FILE_, GATED, "opencode",
		"starts the servers and loads the plugins it names",
		"https://opencode.ai/docs/config" },
	{ ".opencode/opencode.jsonc", FILE_, GATED, "opencode",
		"starts the servers and loads the plugins it names",
		"https://opencode.ai/docs/config" },
	{ "opencode.json", FILE_, KEPT, "opencode",
		"starts the servers and loads the plugins it names",
		"https://opencode.ai/docs/config",
		{ ".config/opencode", ".local/share/opencode", ".opencode" }, "{}\n" },
	{ "opencode.jsonc", FILE_, KEPT, "opencode",
		"starts the servers and loads the plugins it names",
		"https://opencode.ai/docs/config",
		{ ".config/opencode", ".local/share/opencode", ".opencode" }, "{}\n" },
	{ "tui.json", FILE_, REPORTED, "opencode", "obeys it", "https://opencode.ai/docs/tui" },
	{ ".cursor", DIR_, KEPT, "Cursor", "runs its hooks and starts the servers it names",
		"https://cursor.com/docs/agent/hooks",
		{ ".cursor", ".config/Cursor", ".cursor-server" } },
	{ ".windsurf", DIR_, GATED, "Windsurf",
		"runs its hooks and starts the servers it names",
		"https://docs.windsurf.com/windsurf/cascade/hooks" },
	{ ".kiro", DIR_, GATED, "Kiro", "runs its hooks and starts the servers it names",
		"https://kiro.dev/docs/hooks" },
	{ ".clinerules", DIR_, GATED, "Cline", "runs its hooks",
		"https://docs.cline.bot/features/hooks/hook-reference" },
	{ ".roo", DIR_, GATED, "Roo Code", "starts the servers it names",
		"https://docs.roocode.com/features/mcp/using-mcp-in-roo" },
	{ ".continue", DIR_, GATED, "Continue", "starts the servers it names",
		"https://docs.continue.dev/customize/deep-dives/mcp" },
	{ ".amp", DIR_, GATED, "Amp", "starts the servers it names, once they were approved",
		"https://ampcode.com/manual" },
	{ ".factory", DIR_, GATED, "Factory", "runs its hooks and starts the servers it names",
		"https://docs.factory.ai/reference/hooks-reference" },
	{ ".github/hooks", DIR_, GATED, "Copilot CLI", "runs the hooks it names",
		"https://docs.github.com/en/copilot/reference/copilot-cli-reference/"
		"cli-hooks-reference" },
	{ ".github/copilot", DIR_, GATED, "Copilot CLI", "obeys its settings",
		"https://docs.github.com/en/copilot/reference/hooks-reference" },
	{ ".github/agents", DIR_, REPORTED, "Copilot", "offers its agents, with their servers",
		"https://docs.github.com/en/copilot/reference/custom-agents-configuration" },
	{ ".github/skills", DIR_, REPORTED, "Copilot", "offers its skills to the model",
		"https://docs.github.com/en/copilot/concepts/agents/about-agent-skills" },
	{ ".amazonq", DIR_, GATED, "Amazon Q", "runs the hooks and servers of its agents",
		"https://aws.github.io/amazon-q-developer-cli/print.html" },
	{ ".junie", DIR_, GATED, "Junie", "starts the servers it names",
		"https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html" },
	{ ".augment", DIR_, GATED, "Augment", "runs its hooks and starts the servers it names",
		"https://docs.augmentcode.com/cli/hooks" },
	{ ".kilo", DIR_, GATED, "Kilo Code", "starts the servers it names",
		"https://kilo.ai/docs/automate/mcp/using-in-kilo-code" },
	{ ".kilocode", DIR_, GATED, "Kilo Code", "starts the servers it names",
		"https://kilo.ai/docs/automate/mcp/using-in-kilo-code" },
	{ "kilo.jsonc", FILE_, GATED, "Kilo Code", "starts the servers it names",
		"https://kilo.ai/docs/automate/mcp/using-in-kilo-code" },
	{ "crush.json", FILE_, GATED, "Crush",
		"runs the hooks, servers and $(commands) it names",
		"https://github.com/charmbracelet/crush, README and docs/config" },
	{ ".crush.json", FILE_, GATED, "Crush",
		"runs the hooks, servers and $(commands) it names",
		"https://github.com/charmbracelet/crush, README and docs/config" },
	{ ".openhands", DIR_, GATED, "OpenHands", "runs its setup.sh",
		"https://docs.openhands.dev/openhands/usage/customization/repository" },
	{ ".roomodes", FILE_, REPORTED, "Roo Code", "obeys its modes",
		"https://docs.roocode.com/features/custom-modes" },
	{ ".aider.conf.yml", FILE_, GATED, "aider", "runs the commands it names",
		"https://aider.chat/docs/config/aider_conf.html" },
	{ ".vscode", DIR_, KEPT, "VS Code and its kin", "obey its settings and run its tasks",
		"https://code.visualstudio.com/docs/configure/settings" },
	{ "*.code-workspace", FILE_, REPORTED, "VS Code",
		"obeys its settings and runs its tasks",
		"https://code.visualstudio.com/docs/editor/workspaces/workspaces" },
	{ ".idea", DIR_, KEPT, "JetBrains editors", "obey it and run its configurations",
		"https://www.jetbrains.com/help/idea/project-security.html" },
	{ ".run", DIR_, GATED, "JetBrains editors", "offer its configurations to be run",
		"https://www.jetbrains.com/help/idea/run-debug-configuration.html" },
	{ ".zed", DIR_, GATED, "Zed", "starts the servers it names, in a trusted project",
		"https://zed.dev/docs/worktree-trust" },
	{ ".helix", DIR_, GATED, "Helix",
		"starts the servers it names, in older versions without a question",
		"https://docs.helix-editor.com/languages.html" },
	{ ".fleet", DIR_, GATED, "Fleet", "obeys its settings",
		"https://www.jetbrains.com/help/fleet/settings.html" },
	{ ".devcontainer", DIR_, GATED, "editors",
		"run its initializeCommand when they open the container",
		"https://containers.dev/implementors/json_reference/" },
	{ ".devcontainer.json", FILE_, GATED, "editors",
		"run its initializeCommand when they open the container",
		"https://containers.dev/implementors/json_reference/" },
	{ ".exrc", FILE_, GATED, "Vim and Neovim", "run it where 'exrc' is set",
		"https://neovim.io/doc/user/options.html#'exrc'" },
	{ ".nvimrc", FILE_, GATED, "Neovim", "runs it where 'exrc' is set",
		"https://neovim.io/doc/user/options.html#'exrc'" },
	{ ".nvim.lua", FILE_, GATED, "Neovim",
		"runs it where 'exrc' is set, once it was trusted",
		"https://neovim.io/doc/user/options.html#'exrc'" },
	{ ".vimrc", FILE_, GATED, "Vim", "runs it where 'exrc' is set",
		"https://vimhelp.org/options.txt.html#'exrc'" },
	{ ".dir-locals.el", FILE_, GATED, "Emacs", "obeys it, and asks before it runs anything",
		"https://www.gnu.org/software/emacs/manual/html_node/emacs/"
		"Directory-Variables.html" },
	{ ".dir-locals-2.el", FILE_, GATED, "Emacs",
		"obeys it, and asks before it runs anything",
		"https://www.gnu.org/software/emacs/manual/html_node/emacs/"
		"Directory-Variables.html" },
	{ ".vim/coc-settings.json", FILE_, REPORTED, "Vim and Neovim",
		"start the servers it names, with coc.nvim",
		"https://github.com/neoclide/coc.nvim, coc-configuration" },
	{ "rust-analyzer.toml", FILE_, REPORTED, "rust-analyzer", "runs the commands it names",
		"https://rust-analyzer.github.io/book/configuration" },
	{ "*.sublime-project", FILE_, REPORTED, "Sublime Text",
		"obeys its settings and build systems",
		"https://www.sublimetext.com/docs/projects.html" },
	{ ".gdbinit", FILE_, GATED, "gdb", "runs it where its path is declared safe",
		"https://sourceware.org/gdb/current/onlinedocs/gdb.html/"
		"Init-File-in-the-Current-Directory.html" },
	{ ".lldbinit", FILE_, GATED, "lldb", "runs it where load-cwd-lldbinit is set",
		"https://lldb.llvm.org/man/lldb.html" },
	{ ".envrc", FILE_, GATED, "direnv", "runs it, once it was allowed",
		"https://direnv.net/man/direnv.1.html" },
	{ "mise.toml", FILE_, GATED, "mise", "runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ ".mise.toml", FILE_, GATED, "mise", "runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ "mise.local.toml", FILE_, GATED, "mise",
		"runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ ".mise.local.toml", FILE_, GATED, "mise",
		"runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ ".mise", DIR_, GATED, "mise", "runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ "mise/config.toml", FILE_, GATED, "mise",
		"runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ ".config/mise.toml", FILE_, GATED, "mise",
		"runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	{ ".config/mise", DIR_, GATED, "mise", "runs its hooks and tasks, once it was trusted",
		"https://mise.jdx.dev/configuration.html" },
	/* Other version control than git. */
	{ ".hg/hgrc", FILE_, GATED, "Mercurial", "runs its hooks, aliases and extensions",
		"hgrc(5)" },
	{ ".hg/hgrc-not-shared", FILE_, GATED, "Mercurial",
		"runs its hooks, aliases and extensions", "hgrc(5)" },
	{ ".hg/sharedpath", FILE_, GATED, "Mercurial", "takes its hgrc from there",
		"`hg help internals.requirements`" },
	{ ".sl/config", FILE_, GATED, "Sapling", "runs its hooks, aliases and extensions",
		"`sl help config`" },
	{ ".jj/repo/config.toml", FILE_, GATED, "Jujutsu",
		"runs the tools it names, in older versions",
		"https://docs.jj-vcs.dev/latest/design/secure-config/" },
	{ "_darcs/prefs/defaults", FILE_, GATED, "Darcs", "runs the hooks it names",
		"http://darcs.net/Using/Configuration" },
	{ "carrel.json", FILE_, GATED, "carrel",
		"starts the agents it names, once it was approved", "carrel(7)" },
	{ ".pre-commit-config.yaml", FILE_, REPORTED, "pre-commit",
		"runs what it names, where its hook is installed", "https://pre-commit.com/" },
	/* One of a family, with the settings of one person beside it. */
	LEFTHOOK("yml"),
	LEFTHOOK("yaml"),
	LEFTHOOK("toml"),
	LEFTHOOK("json"),
	LEFTHOOK("jsonc"),
	{ ".lefthook", DIR_, REPORTED, "lefthook", "runs the scripts in it",
		"https://lefthook.dev/configuration/source_dir/" },
	{ ".lefthook-local", DIR_, REPORTED, "lefthook", "runs the scripts in it",
		"https://lefthook.dev/configuration/source_dir_local/" },
	{ "prek.toml", FILE_, REPORTED, "pre-commit",
		"runs what it names, where its hook is installed, as prek",
		"https://prek.j178.dev/configuration/" },
	{ ".overcommit.yml", FILE_, REPORTED, "overcommit",
		"runs what it names, once it was signed",
		"https://github.com/sds/overcommit, README" },
	{ ".husky", DIR_, REPORTED, "git", "runs it where core.hooksPath says so",
		"https://typicode.github.io/husky/" },
	{ ".githooks", DIR_, REPORTED, "git", "runs it where core.hooksPath says so",
		"gitconfig core.hooksPath, githooks(5)" },
	{ ".gitmodules", FILE_, REPORTED, "git",
		"clones what it names when submodules are updated", "gitmodules(5)" },
	{ ".yarnrc.yml", FILE_, REPORTED, "Yarn", "runs the program that its yarnPath names",
		"the manual of Yarn, .yarnrc.yml" },
	{ ".yarnrc", FILE_, REPORTED, "Yarn 1", "runs the program that its yarn-path names",
		"the manual of Yarn 1, .yarnrc" },
	{ ".pnpmfile.cjs", FILE_, REPORTED, "pnpm", "runs it during an install",
		"https://pnpm.io/pnpmfile" },
	{ ".npmrc", FILE_, REPORTED, "npm", "obeys it: registry, script shell, node options",
		"npmrc(5)" },
	{ "bunfig.toml", FILE_, REPORTED, "Bun", "runs what its preload names",
		"https://bun.sh/docs/runtime/bunfig" },
	/* Files that name the directory of a language's programs. */
	{ "rust-toolchain.toml", FILE_, REPORTED, "rustup",
		"runs cargo and rustc from where its path says",
		"https://rust-lang.github.io/rustup/overrides.html" },
	{ "rust-toolchain", FILE_, REPORTED, "rustup",
		"runs cargo and rustc from where its path says",
		"https://rust-lang.github.io/rustup/overrides.html" },
	{ ".tool-versions", FILE_, REPORTED, "asdf", "runs tools from where a path: in it says",
		"https://asdf-vm.com/manage/configuration.html" },
	/*
	 * Files that an interpreter or a language server runs when it starts in the directory.
	 */
	{ "hie.yaml", FILE_, REPORTED, "Haskell Language Server",
		"runs the program that it names", "the manual of hie-bios, Bios" },
	{ ".ghci", FILE_, REPORTED, "GHCi", "runs it when it starts there",
		"the GHC User's Guide, The .ghci and .haskeline files" },
	{ ".ropeproject", DIR_, REPORTED, "rope, in servers for Python", "runs its config.py",
		"the manual of rope, Configuration" },
	{ ".Rprofile", FILE_, REPORTED, "R", "runs it when it starts there",
		"the R manual, help(Startup)" },
	{ ".pdbrc", FILE_, REPORTED, "pdb", "runs it when it starts there",
		"https://docs.python.org/3/library/pdb.html" },
	{ ".ocamlinit", FILE_, REPORTED, "OCaml", "runs it when its toplevel starts there",
		"https://ocaml.org/manual/toplevel.html" },
	{ ".irbrc", FILE_, REPORTED, "irb", "runs it when it starts there",
		"the manual of IRB, Configuration File" },
	{ ".pryrc", FILE_, REPORTED, "Pry", "runs it when it starts there",
		"the manual of Pry, Pry rc" },
	{ ".iex.exs", FILE_, REPORTED, "IEx", "runs it when it starts there",
		"https://hexdocs.pm/iex/IEx.html" },
	{ ".cargo", DIR_, REPORTED, "cargo", "runs the wrappers, linkers and runners it names",
		"https://doc.rust-lang.org/cargo/reference/config.html" },
	{ "CLAUDE.md", FILE_, TOLD, "Claude Code", "reads it as instructions",
		"https://code.claude.com/docs/en/memory" },
	{ "CLAUDE.local.md", FILE_, TOLD, "Claude Code", "reads it as instructions",
		"https://code.claude.com/docs/en/memory" },
	{ "AGENTS.md", FILE_, TOLD, "clients", "read it as instructions",
		"https://agents.md/" },
	{ "AGENTS.override.md", FILE_, TOLD, "Codex", "reads it as instructions",
		"https://learn.chatgpt.com/docs/agent-configuration/agents-md" },
	{ "AGENT.md", FILE_, TOLD, "clients", "read it as instructions",
		"https://ampcode.com/manual" },
	{ "GEMINI.md", FILE_, TOLD, "Gemini CLI", "reads it as instructions",
		"https://geminicli.com/docs/cli/gemini-md" },
	{ "QWEN.md", FILE_, TOLD, "Qwen Code", "reads it as instructions",
		"https://qwenlm.github.io/qwen-code-docs/en/users/configuration/settings" },
	{ ".cursorrules", FILE_, TOLD, "Cursor", "reads it as instructions",
		"https://cursor.com/docs/context/rules" },
	{ ".windsurfrules", FILE_, TOLD, "Windsurf", "reads it as instructions",
		"https://docs.windsurf.com/windsurf/cascade/memories" },
	{ ".roorules", FILE_, TOLD, "Roo Code", "reads it as instructions",
		"https://docs.roocode.com/features/custom-instructions" },
	{ ".rules", FILE_, TOLD, "Zed", "reads it as instructions",
		"https://zed.dev/docs/ai/rules" },
	{ ".github/copilot-instructions.md", FILE_, TOLD, "Copilot", "reads it as instructions",
		"https://docs.github.com/en/copilot/how-tos/configure-custom-instructions/"
		"add-repository-instructions" },
	{ "CRUSH.md", FILE_, TOLD, "Crush", "reads it as instructions",
		"https://github.com/charmbracelet/crush, README" },
	{ ".goosehints", FILE_, TOLD, "Goose", "reads it as instructions",
		"https://block.github.io/goose/docs/guides/using-goosehints" },
	{ ".augment-guidelines", FILE_, TOLD, "Augment", "reads it as instructions",
		"https://docs.augmentcode.com/cli/rules" },
	{ ".aiassistant", DIR_, TOLD, "AI Assistant of JetBrains", "reads it as instructions",
		"https://www.jetbrains.com/help/ai-assistant/configure-project-rules.html" },
	{ "CONVENTIONS.md", FILE_, TOLD, "aider", "reads it as instructions",
		"https://aider.chat/docs/usage/conventions.html" },
	{ ".github/instructions", DIR_, TOLD, "Copilot", "reads it as instructions",
		"https://docs.github.com/en/copilot/how-tos/configure-custom-instructions/"
		"add-repository-instructions" },
};
const size_t obeyed_n = ARRAY_SIZE(obeyed_all);

/* The end of the entry's path, if it matches at this part of a path; else NULL. */
static const char *stands_at(const struct obeyed *o, const char *at, bool dir)
{
	const size_t n = strlen(o->path);

	if (*o->path == '*')
		return !strchr(at, '/') && !dir && str_ends(at, o->path + 1) ? at + strlen(at)
									     : NULL;
	if (strncmp(at, o->path, n) != 0)
		return NULL;
	if (at[n] == '/')
		return o->dir ? at + n : NULL;
	return !at[n] && (o->dir || !dir) ? at + n : NULL;
}

/* The longest match: of .claude and .claude/worktrees, the second. */
const struct obeyed *obeyed_find(const char *rel, bool dir)
{
	const struct obeyed *found = NULL;
	const char *last = rel;

	for (const char *at = rel; at; at = strchr(at, '/'), at += at != NULL)
		for (size_t i = 0; i < obeyed_n; i++) {
			const char *end = stands_at(&obeyed_all[i], at, dir);

			if (!end || end <= last)
				continue;
			found = &obeyed_all[i];
			last = end;
		}
	return found;
}
