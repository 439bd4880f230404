/*
 * git/git-tracked.h - is what a file says part of the repository anyway?
 *
 * A hidden file that git tracks is no secret of the user's: its content is in the history,
 * which the box reads. Hidden all the same, it would be an empty one to the box's git, and be
 * committed so. But the box can write the index and claim anything of a file that it cannot
 * read. What it cannot do is name the id of a content that it does not know. So a file counts
 * as tracked if the id of what it says now stands in the index, under whatever name.
 *
 * A file that was tracked so at an earlier start may have local changes by now. For whoever
 * remembers that, it is enough that the index still has its name.
 */
#ifndef GIT_GIT_TRACKED_H
#define GIT_GIT_TRACKED_H

enum tracked {
	TRACKED_NOT,
	TRACKED_NAME,    /* the index has an entry of its name, with another content */
	TRACKED_CONTENT, /* the index has its content */
};

/*
 * rel is a regular file below root. Where anything cannot be read, it is not tracked; nor is
 * one with local changes where the index has its names packed (version 4).
 */
enum tracked tracked_look(const char *root, const char *rel);

#endif
