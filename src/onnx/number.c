#include "number.h"

#include "tensor/convert.h"

onnx_whole onnx_whole_read(const struct weir_tensor *tensor, size_t i)
{
    int64_t bits;
    weir_elems_to_i64(tensor->dtype,
                      (const char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), &bits, 1);
    return tensor->dtype == WEIR_DTYPE_UINT64 ? (onnx_whole)(uint64_t)bits : (onnx_whole)bits;
}

void onnx_whole_write(struct weir_tensor *tensor, size_t i, onnx_whole value)
{
    const int64_t bits =
        tensor->dtype == WEIR_DTYPE_BOOL ? value != 0 : (int64_t)(onnx_whole_bits)value;
    weir_elems_from_i64(tensor->dtype, &bits, false,
                        (char *)tensor->data + i * weir_dtype_bytes(tensor->dtype), 1);
}

/* Bits of the magnitude. A bool has one. */
static size_t n_bits(enum weir_dtype dtype)
{
    return dtype == WEIR_DTYPE_BOOL
               ? 1
               : weir_dtype_bits(dtype) - (weir_dtype_class(dtype) == WEIR_DTYPE_IS_SIGNED);
}

onnx_whole onnx_whole_least(enum weir_dtype dtype)
{
    return weir_dtype_class(dtype) == WEIR_DTYPE_IS_SIGNED ? -((onnx_whole)1 << n_bits(dtype)) : 0;
}

onnx_whole onnx_whole_most(enum weir_dtype dtype)
{
    return ((onnx_whole)1 << n_bits(dtype)) - 1;
}

onnx_whole onnx_whole_of(double value)
{
    const onnx_whole half = (onnx_whole)1 << 126; /* 2^127 itself has no room */
    return isnan(value)        ? 0
           : value >= 0x1p127  ? half - 1 + half
           : value <= -0x1p127 ? -half - half
                               : (onnx_whole)value;
}

double onnx_number_f64(struct onnx_number number)
{
    return number.whole != 0 ? (double)number.whole : number.real;
}
