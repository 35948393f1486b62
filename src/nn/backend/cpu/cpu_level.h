/** CPU level: the instruction sets for which loops are compiled more than once. */
#ifndef WEIR_NN_CPU_LEVEL_H
#define WEIR_NN_CPU_LEVEL_H

/** Levels of x86-64, as its psABI defines them: V1 any processor, V3 AVX2 and FMA, V4 AVX-512. */
enum cpu_level { CPU_LEVEL_V1 = 1, CPU_LEVEL_V3 = 3, CPU_LEVEL_V4 = 4 };

/** The level of this processor. */
enum cpu_level cpu_level(void);

#endif
