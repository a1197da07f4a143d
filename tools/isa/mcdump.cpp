// mcdump.cpp - developer helper of gen_isa.py: asks LLVM's MC layer what it knows about encodings.
//
// Reads lines of hex bytes from stdin, writes one line each: tab-separated
//   opcode name, size, text, number of definitions, operands, implicit uses, implicit definitions
// or "INVALID". An operand is kind:value:class:bits:type:tied (kind r register, i immediate). With "-t" the
// line is only "size<TAB>text" or "INVALID". Every line is flushed, so that after a crash inside LLVM the
// caller knows which input was the last good one.
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"
#include <iostream>
#include <string>
#include <vector>
using namespace llvm;

extern "C" {
void LLVMInitializeAMDGPUTargetInfo(void);
void LLVMInitializeAMDGPUTargetMC(void);
void LLVMInitializeAMDGPUDisassembler(void);
}

int
main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    bool TextOnly = argc > 2 && std::string(argv[2]) == "-t";
    const char *Feat = argc > 3 ? argv[3] : "";
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    std::string Err;
    Triple TT("amdgcn-amd-amdhsa");
    const Target *T = TargetRegistry::lookupTarget(TT, Err);
    if (!T)
        return 3;
    MCTargetOptions MO;
    std::unique_ptr<MCRegisterInfo> MRI(T->createMCRegInfo(TT));
    std::unique_ptr<MCAsmInfo> MAI(T->createMCAsmInfo(*MRI, TT, MO));
    std::unique_ptr<MCInstrInfo> MII(T->createMCInstrInfo());
    std::unique_ptr<MCSubtargetInfo> STI(T->createMCSubtargetInfo(TT, argv[1], Feat));
    MCContext Ctx(TT, MAI.get(), MRI.get(), STI.get());
    std::unique_ptr<MCDisassembler> Dis(T->createMCDisassembler(*STI, Ctx));
    std::unique_ptr<MCInstPrinter> IP(T->createMCInstPrinter(TT, 0, *MAI, *MII, *MRI));
    std::string Line;
    while (std::getline(std::cin, Line)) {
        std::vector<uint8_t> B;
        for (size_t I = 0; I + 1 < Line.size(); I += 2)
            B.push_back((uint8_t)std::stoi(Line.substr(I, 2), nullptr, 16));
        MCInst Inst;
        uint64_t Size = 0;
        auto S = Dis->getInstruction(Inst, Size, B, 0, nulls());
        if (S != MCDisassembler::Success) {
            std::cout << "INVALID\n" << std::flush;
            continue;
        }
        std::string Text;
        raw_string_ostream OS(Text);
        IP->printInst(&Inst, 0, "", *STI, OS);
        OS.flush();
        for (char &C : Text)
            if (C == '\t' || C == '\n')
                C = ' ';
        if (TextOnly) {
            std::cout << Size << "\t" << Text << "\n" << std::flush;
            continue;
        }
        const MCInstrDesc &D = MII->get(Inst.getOpcode());
        std::cout << MII->getName(Inst.getOpcode()).str() << "\t" << Size << "\t" << Text << "\t"
                  << D.getNumDefs() << "\t";
        for (unsigned I = 0; I < Inst.getNumOperands(); I++) {
            const MCOperand &O = Inst.getOperand(I);
            if (O.isReg())
                std::cout << "r:" << (O.getReg() ? MRI->getName(O.getReg()) : "-");
            else if (O.isImm())
                std::cout << "i:" << O.getImm();
            else if (O.isExpr())
                std::cout << "e:0";
            else
                std::cout << "x:0";
            if (I < D.getNumOperands()) {
                const MCOperandInfo &OI = D.operands()[I];
                int RC = MII->getOpRegClassID(OI, 0);
                std::cout << ":" << (RC >= 0 ? MRI->getRegClassName(&MRI->getRegClass(RC)) : "-") << ":"
                          << (RC >= 0 ? MRI->getRegClass(RC).getSizeInBits() : 0) << ":"
                          << (int)OI.OperandType << ":" << D.getOperandConstraint(I, MCOI::TIED_TO);
            } else
                std::cout << ":-:0:0:-1";
            std::cout << " ";
        }
        std::cout << "\t";
        for (MCPhysReg R : D.implicit_uses())
            std::cout << MRI->getName(R) << " ";
        std::cout << "\t";
        for (MCPhysReg R : D.implicit_defs())
            std::cout << MRI->getName(R) << " ";
        std::cout << "\t" << D.TSFlags << "\n" << std::flush;
    }
    return 0;
}
