/* managed.c - variables that host and devices share (__managed__). Compilers make two symbols of one:
 * "x.managed" with the initial value, and "x", a pointer through which all code reaches it and which the
 * loader sets. */
#include <stdio.h>

#include "sim/elf.h"
#include "sim/image_priv.h"

uint64_t
sim_managed_new(SimMem *m, const char *name, uint64_t size, uint64_t init)
{
    void *p = sim_mem_alloc(m, size, SIM_EXT_PINNED, true, name);
    if (!p)
        return 0;
    sim_mem_tag(m, sim_dm_at(p), SIM_TAG_MANAGED | 1 /* hipMemAttachGlobal */);
    if (init)
        sim_dm_move(sim_dm_at(p), init, size);
    return sim_dm_at(p);
}

const SimManaged *
sim_managed_find(const SimImage *im, const char *name)
{
    for (uint32_t i = 0; i < im->managed.len; i++)
        if (!strcmp(im->managed.data[i].name, name))
            return &im->managed.data[i];
    return NULL;
}

/* The name of the variable whose initial value a symbol is; NULL: it is none. */
static const char *
variable(SimImage *im, const SimSymbol *s)
{
    static const char suffix[] = ".managed";
    size_t n = strlen(s->name), tail = sizeof suffix - 1;
    if (s->type != STT_OBJECT || n <= tail || strcmp(s->name + n - tail, suffix))
        return NULL;
    char *name = tl_arena_alloc(&im->arena, n - tail + 1, 1);
    if (!name)
        return NULL;
    memcpy(name, s->name, n - tail);
    name[n - tail] = 0;
    return name;
}

static bool
bind(SimImage *im, const SimSymbol *s, const char *name, const SimManaged *known, uint64_t *room)
{
    const SimSymbol *pointer = sim_image_symbol(im, name);
    SimManaged v = {.name = name, .size = s->size};
    SimExtent x;
    if (!pointer || pointer->type != STT_OBJECT || pointer->size != 8 || !s->size ||
        !sim_mem_lookup(im->mem, pointer->address, 8, &x) || (x.flags & SIM_EXT_READONLY) ||
        !sim_mem_lookup(im->mem, s->address, s->size, &x))
        return true; /* something else that is called so */
    for (; known && !v.address; known = known->next)
        if (!strcmp(known->name, name))
            v.address = known->address;
    if (!v.address) {
        if (s->size > *room)
            return false; /* they share bytes */
        *room -= s->size;
        v.own = true;
        v.address = sim_managed_new(im->mem, name, s->size, s->address);
    }
    if (!v.address)
        return false;
    sim_dm_write(pointer->address, &v.address, 8);
    if (tl_vec_push(&im->arena, &im->managed, v))
        return true;
    if (v.own)
        sim_mem_release(im->mem, v.address, SIM_EXT_PINNED);
    return false;
}

bool
sim_managed_bind(SimImage *im, const SimManaged *known, char *why, size_t why_size)
{
    uint64_t room = im->map_size;
    for (uint32_t i = 0; i < im->symbols.len; i++) {
        const char *name = variable(im, &im->symbols.data[i]);
        if (name && !bind(im, &im->symbols.data[i], name, known, &room)) {
            snprintf(why, why_size, "no memory for the managed variable %s", name);
            return false;
        }
    }
    return true;
}

void
sim_managed_drop(SimImage *im)
{
    for (uint32_t i = 0; i < im->managed.len; i++)
        if (im->managed.data[i].own)
            sim_mem_release(im->mem, im->managed.data[i].address, SIM_EXT_PINNED);
    im->managed.len = 0;
}
