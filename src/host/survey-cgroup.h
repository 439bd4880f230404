/*
 * host/survey-cgroup.h - may this user have a control group for a box?
 */
#ifndef HOST_SURVEY_CGROUP_H
#define HOST_SURVEY_CGROUP_H

struct cgroup_facts;

/* Looks once; later calls give the same answer, as the plan needs the one of the frame. */
const struct cgroup_facts *survey_cgroup(void);

#endif
