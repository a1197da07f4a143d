/* cg_debug.c - line tables: the locations of operations become the DWARF line table of the code object, by
 * which disassembly and simulator reports name lines of Python. No variables, no types.
 */
#include "codegen/cg.h"

static LLVMMetadataRef
di_file(Cg *g, uint32_t file)
{
    const char *path = file && file < g->diag->files.len ? g->diag->files.data[file] : "<unknown>";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t dir = slash ? (size_t)(slash - path) : 0;
    return LLVMDIBuilderCreateFile(g->di, name, strlen(name), path, dir ? dir : (size_t)(slash != NULL));
}

static void
module_flag(Cg *g, const char *key, uint32_t value)
{
    LLVMAddModuleFlag(g->mod, LLVMModuleFlagBehaviorWarning, key, strlen(key),
                      LLVMValueAsMetadata(cg_int(g->i32, value)));
}

void
cg_debug_begin(Cg *g)
{
    const TlKernel *k = &g->ir->kernels.data[g->kernel];
    const char *name = tl_str(&g->ir->strs, k->name);
    g->ndi_scopes = g->diag->files.len + 1;
    g->di_scopes = TL_NEW_N(g->arena, LLVMMetadataRef, g->ndi_scopes);
    if (g->opts->no_line_tables || !g->di_scopes)
        return;
    module_flag(g, "Debug Info Version", LLVMDebugMetadataVersion());
    module_flag(g, "Dwarf Version", 5);
    g->di = LLVMCreateDIBuilder(g->mod);
    g->di_fn_file = k->loc.file;
    LLVMMetadataRef file = di_file(g, k->loc.file);
    LLVMDIBuilderCreateCompileUnit(g->di, LLVMDWARFSourceLanguageC11, file, "tilelang", 8, true, "", 0, 0, "",
                                   0, LLVMDWARFEmissionLineTablesOnly, 0, false, false, "", 0, "", 0);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(g->di, file, NULL, 0, LLVMDIFlagZero);
    g->di_fn = LLVMDIBuilderCreateFunction(g->di, file, name, strlen(name), name, strlen(name), file,
                                           k->loc.line, type, false, true, k->loc.line, LLVMDIFlagZero, true);
    LLVMSetSubprogram(g->fn, g->di_fn);
}

void
cg_debug_loc(Cg *g, TlLoc loc)
{
    if (!g->di_fn)
        return;
    LLVMMetadataRef scope = g->di_fn;
    if (loc.line && loc.file != g->di_fn_file && loc.file < g->ndi_scopes) { /* of a helper in another file */
        LLVMMetadataRef *s = &g->di_scopes[loc.file];
        if (!*s)
            *s = LLVMDIBuilderCreateLexicalBlockFile(g->di, g->di_fn, di_file(g, loc.file), 0);
        scope = *s;
    }
    if (loc.line)
        LLVMSetCurrentDebugLocation2(
            g->b, LLVMDIBuilderCreateDebugLocation(g->ctx, loc.line, loc.col, scope, NULL));
}

void
cg_debug_end(Cg *g)
{
    if (!g->di)
        return;
    LLVMDIBuilderFinalize(g->di);
    LLVMDisposeDIBuilder(g->di);
    g->di = NULL;
}
