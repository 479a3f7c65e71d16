/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * xensim's commands. ARGV[0] is the command's name. Each returns an exit status: 0, 1 for a failure
 * that a sentence on stderr explains, 2 for wrong usage.
 */

int command_run(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_pause(int argc, char **argv);
int command_resume(int argc, char **argv);
int command_poke(int argc, char **argv);
int command_fault(int argc, char **argv);
int command_domain(int argc, char **argv);
int command_event(int argc, char **argv);
int command_insert(int argc, char **argv);
int command_wait(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_rules(int argc, char **argv);
int command_records(int argc, char **argv);
