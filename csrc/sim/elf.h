/* elf.h - the parts of ELF64 that code objects use (own definitions; little-endian hosts). */
#ifndef TL_SIM_ELF_H
#define TL_SIM_ELF_H

#include <stdint.h>

typedef struct Ehdr {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, phoff, shoff;
    uint32_t flags;
    uint16_t ehsize, phentsize, phnum, shentsize, shnum, shstrndx;
} Ehdr;

typedef struct Phdr {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, filesz, memsz, align;
} Phdr;

typedef struct Shdr {
    uint32_t name, type;
    uint64_t flags, addr, offset, size;
    uint32_t link, info;
    uint64_t addralign, entsize;
} Shdr;

typedef struct Sym {
    uint32_t name;
    uint8_t info, other;
    uint16_t shndx;
    uint64_t value, size;
} Sym;

typedef struct Rela {
    uint64_t offset, info;
    int64_t addend;
} Rela;

typedef struct Dyn {
    uint64_t tag, val;
} Dyn;

enum {
    ET_DYN = 3,
    EM_AMDGPU = 224,
    OSABI_AMDGPU_HSA = 64,
    PT_LOAD = 1,
    PT_DYNAMIC = 2,
    PT_NOTE = 4,
    PF_X = 1,
    PF_W = 2,
    SHT_SYMTAB = 2,
    SHT_STRTAB = 3,
    SHT_NOBITS = 8,
    SHT_DYNSYM = 11,
    STT_OBJECT = 1,
    STT_FUNC = 2,
    STT_KERNEL = 10,
    STB_WEAK = 2,
    DT_RELA = 7,
    DT_RELASZ = 8,
    DT_RELAENT = 9,
    R_ABS64 = 3,
    R_RELATIVE64 = 13,
    NT_AMDGPU_METADATA = 32
};

#endif
