// libedit as the system installs it. Wrappers only for its calls with a variable number of arguments, which Swift
// cannot make.
#ifndef LARDER_CEDITLINE_SHIM_H
#define LARDER_CEDITLINE_SHIM_H

#include <stddef.h>
#include <stdio.h>

#include <histedit.h>

typedef char *(*larder_edit_prompt)(EditLine *);
typedef unsigned char (*larder_edit_command)(EditLine *, int);
typedef int (*larder_edit_read)(EditLine *, wchar_t *);

static inline EditLine *larder_edit_begin(const char *program) { return el_init(program, stdin, stdout, stderr); }

static inline void larder_edit_set_context(EditLine *editor, void *context) {
    el_set(editor, EL_CLIENTDATA, context);
}

static inline void *larder_edit_context(EditLine *editor) {
    void *context = NULL;
    el_get(editor, EL_CLIENTDATA, &context);
    return context;
}

static inline void larder_edit_set_prompt(EditLine *editor, larder_edit_prompt prompt) {
    el_set(editor, EL_PROMPT, prompt);
}

static inline void larder_edit_set_read(EditLine *editor, larder_edit_read read) {
    el_set(editor, EL_GETCFN, read);
}

static inline void larder_edit_set_keys(EditLine *editor, const char *keys) { el_set(editor, EL_EDITOR, keys); }

/// Binds a key to a command of this program.
static inline void larder_edit_bind(EditLine *editor, const char *key, const char *name, larder_edit_command command) {
    el_set(editor, EL_ADDFN, name, name, command);
    el_set(editor, EL_BIND, key, name, NULL);
}

/// Binds a key to a command of libedit.
static inline void larder_edit_bind_own(EditLine *editor, const char *key, const char *name) {
    el_set(editor, EL_BIND, key, name, NULL);
}

/// Sets the terminal up for editing, or restores it.
static inline void larder_edit_take_terminal(EditLine *editor, int takes) { el_set(editor, EL_PREP_TERM, takes); }

static inline void larder_edit_refresh(EditLine *editor) { el_set(editor, EL_REFRESH); }

static inline void larder_edit_set_history(EditLine *editor, History *entries, int entries_max) {
    HistEvent event;
    history(entries, &event, H_SETSIZE, entries_max);
    history(entries, &event, H_SETUNIQUE, 1);
    el_set(editor, EL_HIST, history, entries);
}

static inline void larder_edit_remember(History *entries, const char *line) {
    HistEvent event;
    history(entries, &event, H_ENTER, line);
}

#endif
