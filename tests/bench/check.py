"""What a user would write instead of kd-preflight's torch rung: the same product and gradient, compared exactly."""
import torch

a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
b = torch.tensor([[2.0, 0.0], [1.0, 2.0]])
c = a @ b
loss = (c * c).sum()
loss.backward()
assert c.tolist() == [[4.0, 4.0], [10.0, 8.0]]
assert loss.item() == 196.0
assert a.grad.tolist() == [[16.0, 24.0], [40.0, 52.0]]
