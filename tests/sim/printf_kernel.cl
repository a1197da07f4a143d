// printf_kernel.cl - OpenCL's printf buffer: scalars, a string, vectors. Built by test_sim_services.py.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
constant int __oclc_ABI_version = 600; // asked for by the device library

kernel void
k(global int *p, double d)
{
    int i = __builtin_amdgcn_workitem_id_x();
    if (i < 2)
        printf("lane %d: %s %5.2f %v4d|%hhd %ld %c%% %g %v3hlx\n", i, "str", 1.5f * i, (int4)(1, 2, 3, i), (char)5,
               (long)i << 40, 'x', d, (uint3)(10, 11, i));
    p[i] = i;
}
