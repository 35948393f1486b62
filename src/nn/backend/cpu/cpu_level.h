/** What the processor can do, in the steps for which loops are compiled more than once. */
#ifndef WEIR_NN_CPU_LEVEL_H
#define WEIR_NN_CPU_LEVEL_H

/** Levels of x86-64 (its ABI's document): V3 has AVX2 and FMA, V4 AVX-512; V1 is any processor. */
enum cpu_level { CPU_LEVEL_V1 = 1, CPU_LEVEL_V3 = 3, CPU_LEVEL_V4 = 4 };

enum cpu_level cpu_level(void);

#endif
