/*
 * git/git-tracked.h - does the repository already contain what a file says?
 *
 * A hidden file that git tracks is no secret: its content is in the history, which the box can
 * read. If it were hidden, git in the box would see an empty file and commit that. But the box
 * can write the index, and claim anything there about a file that it cannot read. What it
 * cannot do is to name the id of a content that it does not know. So a file counts as tracked
 * if the id of its present content is in the index, under any name.
 *
 * A file that was tracked at an earlier start may have local changes by now. A caller that
 * remembers the earlier start needs only the file's name in the index.
 */
#ifndef GIT_GIT_TRACKED_H
#define GIT_GIT_TRACKED_H

enum tracked {
	TRACKED_NOT,
	TRACKED_NAME,    /* the index has its name, with another content */
	TRACKED_CONTENT, /* the index has its content */
};

/*
 * rel is a regular file below root. If anything cannot be read, the file is not tracked. Nor is
 * a file with local changes if the index packs its names (version 4).
 */
enum tracked tracked_look(const char *root, const char *rel);

#endif
