# cython: language_level=3, profile=True, linetrace=True
"""Calls back into Python, and raises through both."""


def c_calls(function, count):
    total = 0
    for number in range(count):
        total += function(number)
    return total


def c_raises(function):
    return c_inner(function)


cdef int c_inner(function) except? -1:
    return function(0)


def c_generator(count):
    for number in range(count):
        yield number


class Class:
    def c_method(self, function):
        return function(1)
